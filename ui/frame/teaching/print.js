// @ts-check
// The button that prints a sheet, such as an exercise sheet. Only the sheet itself is printed (see the
// page's sheet.css).
document.addEventListener("click", ({ target }) => {
  if (target instanceof Element && target.closest(".print-sheet")) print();
});
