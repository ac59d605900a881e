// @ts-check
// The letters of drawings are those of the texts around them: Streamlit's own font. Where that is not
// at hand, as in a saved file on another machine, the reader's takes its place.

const FAMILY = '"Source Sans", sans-serif';
const LABEL = `13px ${FAMILY}`,
  STRONG_LABEL = `600 13px ${FAMILY}`,
  HEADING = `600 14px ${FAMILY}`;
