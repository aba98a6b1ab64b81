import { withSection } from './document-section.js';
import { flagsTables, formerNamesTable, managerTable, namesTable } from './option-documents.js';
import { parameterFieldsTable, parameterTensorsTable } from './parameter-tables.js';

const SECTIONS = {
  flags: flagsTables,
  names: namesTable,
  'gpt-manager-options': managerTable,
  'former-names': formerNamesTable,
  'parameter-fields': parameterFieldsTable,
  'parameter-tensors': parameterTensorsTable,
};

/** The documents that show options, or parameters of requests. */
export const DOCUMENTS = [
  'docs/options.md',
  'docs/host-server.md',
  'docs/architecture/names.md',
  'docs/api.md',
  'docs/tensors.md',
];

/** A Markdown text with its generated tables written again: each stands between `<!-- NAME -->` and `<!-- /NAME -->`. */
export function withOptionTables(text: string): string {
  return Object.entries(SECTIONS).reduce(
    (result, [name, table]) =>
      result.includes(`<!-- ${name} -->`) ? withSection(result, name, table()) : result,
    text,
  );
}
