// @ts-check
// A page whose parts get shorter ends no higher than the window does: whoever stands near its end would
// be thrown up. Another page begins at its top.
{
  let path = location.pathname;

  /** The window shows nothing behind the end of a page, so that this changes nothing at first. */
  const keepWhatIsInTheWindow = () => {
    const main = document.querySelector(".stMain"),
      page = main?.querySelector(".stMainBlockContainer");
    if (!main || !(page instanceof HTMLElement)) return;
    page.style.flexShrink = "0"; // with a least height of its own it would get no higher
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
