import { writeFileSync } from 'node:fs';
import { CONTRACTS, schemaText } from './json-schemas.js';

// Writes the JSON schemas of the contracts into docs/schemas.
for (const contract of CONTRACTS) {
  writeFileSync(new URL(`../docs/schemas/${contract.file}`, import.meta.url), schemaText(contract));
}
