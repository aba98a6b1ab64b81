import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSection } from './document-section.js';
import { modelTables } from './published-models/model-tables.js';
import { openHeaders, PUBLISHED_MODELS } from './published-models/published-models.js';

// Writes the tables of models into docs/models.md.
const folder = mkdtempSync(join(tmpdir(), 'skein-published-'));
try {
  const opened = PUBLISHED_MODELS.map((model, i) => ({
    model,
    opened: openHeaders(join(folder, String(i)), model),
  }));
  for (const [name, table] of Object.entries(modelTables(opened)))
    writeSection('docs/models.md', name, table);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
