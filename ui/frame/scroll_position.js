// @ts-check
// Keeps the scroll position when content gets shorter: the page never ends above the bottom of the
// window, so a visitor near its end isn't scrolled up. A newly opened page starts at the top.
{
  let path = location.pathname;

  /** Make the page at least as tall as what is visible now. Initially this changes nothing. */
  const keepWhatIsInTheWindow = () => {
    const main = document.querySelector(".stMain"),
      page = main?.querySelector(".stMainBlockContainer");
    if (!main || !(page instanceof HTMLElement)) return;
    page.style.flexShrink = "0"; // otherwise the minimum height would limit its growth
    page.style.minHeight = `${Math.floor(main.scrollTop + main.clientHeight)}px`;
  };

  const beginAtTheTop = () => {
    if (path === location.pathname) return;
    path = location.pathname;
    document.querySelector(".stMain")?.scrollTo({ top: 0, behavior: "instant" });
    keepWhatIsInTheWindow();
  };

  addEventListener("scroll", keepWhatIsInTheWindow, { capture: true, passive: true });
  addEventListener("resize", keepWhatIsInTheWindow);
  new MutationObserver(beginAtTheTop).observe(document.body, { subtree: true, childList: true });
}
