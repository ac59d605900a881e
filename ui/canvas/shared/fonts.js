// @ts-check
// Canvases use Streamlit's font, like the text around them. If it isn't available, as in a saved file on
// another machine, the default sans-serif font is used.

const FAMILY = '"Source Sans", sans-serif';
const LABEL = `13px ${FAMILY}`,
  STRONG_LABEL = `600 13px ${FAMILY}`,
  HEADING = `600 14px ${FAMILY}`;
