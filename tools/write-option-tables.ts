import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { DOCUMENTS, withOptionTables } from './option-tables.js';

// Writes the tables of options and of request parameters into the documents that show them.
for (const name of DOCUMENTS) {
  const path = new URL(`../${name}`, import.meta.url);
  if (existsSync(path)) writeFileSync(path, withOptionTables(readFileSync(path, 'utf8')));
}
