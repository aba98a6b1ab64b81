import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { withOptionTables } from './option-tables.js';

// Writes the tables of options into the documents that show them.
for (const name of ['docs/options.md', 'docs/architecture/names.md']) {
  const path = new URL(`../${name}`, import.meta.url);
  if (existsSync(path)) writeFileSync(path, withOptionTables(readFileSync(path, 'utf8')));
}
