import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';

// The package's types name its default export as CommonJS has it.
const addFormats = ajvFormats as unknown as (ajv: Ajv2020) => void;

/** How a schema is refused that no text matches. */
export const NO_TEXT = /No text matches|none of the texts/;

/** ajv, as answers are judged by it. Decimals are compared as they are written: 0.07 is a multiple of 0.01. */
export function newValidator(): Ajv2020 {
  const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });
  addFormats(ajv);
  return ajv;
}
