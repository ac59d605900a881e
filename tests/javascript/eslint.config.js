// The scripts in ui/canvas/shared are prepended to each drawing's script, which uses their names.
// The type checker sees both together and reports undefined names.

import js from "@eslint/js";

const NAMES_ACROSS_FILES = { "no-undef": "off", "no-unused-vars": "off" };

export default [
  js.configs.recommended,
  {
    rules: {
      ...NAMES_ACROSS_FILES,
      eqeqeq: "error",
      "no-control-regex": "off", // what XML has no place for is a control character
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "no-restricted-syntax": [
        "error",
        {
          selector: "MemberExpression[property.name=/^(outerHTML|insertAdjacentHTML|write)$/]",
          message: "All text reaches the page as text, never as markup.",
        },
      ],
    },
  },
  {
    files: ["ui/canvas/**/*.js"],
    rules: {
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "All text reaches the page as text, never as markup." },
      ],
    },
  },
  { files: ["ui/canvas/shared/*.js"], languageOptions: { sourceType: "script" } },
];
