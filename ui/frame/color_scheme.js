// @ts-check
// Streamlit says on its app which colour scheme the theme has. What it opens beside the app, such as
// the settings of a page, would not know: the whole document is told.
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
