import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { writeSection } from './document-section.js';
import { MODEL_DOCUMENTS } from './published-models/model-tables.js';
import { openHeaders, PUBLISHED_MODELS } from './published-models/published-models.js';

// Writes the tables of models into the documents that show them.
const folder = mkdtempSync(join(tmpdir(), 'skein-published-'));
try {
  const opened = PUBLISHED_MODELS.map((model, i) => ({
    model,
    opened: openHeaders(join(folder, String(i)), model),
  }));
  for (const [document, tablesOf] of Object.entries(MODEL_DOCUMENTS))
    for (const [name, table] of Object.entries(tablesOf(opened))) writeSection(document, name, table);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
