// @ts-check
// The button of what can be printed, such as an exercise sheet: only what is marked as a sheet comes on
// paper (sheet.css of the page).
document.addEventListener("click", ({ target }) => {
  if (target instanceof Element && target.closest(".print-sheet")) print();
});
