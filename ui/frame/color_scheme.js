// @ts-check
// Copies the theme's color scheme from Streamlit's app element to the whole document, because elements
// outside the app, such as the settings popover, need it, too.
{
  const appears = new MutationObserver(() => {
    const app = document.querySelector(".stApp");
    if (!app) return;
    appears.disconnect();
    const tell = () => {
      document.documentElement.style.colorScheme = getComputedStyle(app).colorScheme;
    };
    new MutationObserver(tell).observe(app, { attributes: true, attributeFilter: ["class"] });
    tell();
  });
  appears.observe(document.body, { subtree: true, childList: true });
}
