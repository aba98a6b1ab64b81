import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import ajvFormats from 'ajv-formats';

/** Drafts of JSON Schema. */
export type Draft = '2019-09' | '2020-12';

// The package's types name its default export as CommonJS has it.
const addFormats = ajvFormats as unknown as (ajv: Ajv2019 | Ajv2020) => void;
/** Decimals are compared as they are written: 0.07 is a multiple of 0.01. */
const OPTIONS = { strict: false, logger: false, multipleOfPrecision: 9 } as const;

/** How a schema is refused that no text matches. */
export const NO_TEXT = /No text matches|none of the texts/;

/** ajv, as answers are judged by it. */
export function newValidator(draft: Draft = '2020-12'): Ajv2019 | Ajv2020 {
  const ajv = draft === '2019-09' ? new Ajv2019(OPTIONS) : new Ajv2020(OPTIONS);
  addFormats(ajv);
  return ajv;
}
