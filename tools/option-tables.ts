import { flagsTables, formerNamesTable, managerTable, namesTable } from '../src/options/option-documents.js';
import { withSection } from './document-section.js';

const SECTIONS = {
  flags: flagsTables,
  names: namesTable,
  'gpt-manager-options': managerTable,
  'former-names': formerNamesTable,
};

/** The documents that show options. */
export const DOCUMENTS = ['docs/options.md', 'docs/host-server.md', 'docs/architecture/names.md'];

/** A Markdown text with its tables of options made anew: each stands between `<!-- NAME -->` and `<!-- /NAME -->`. */
export function withOptionTables(text: string): string {
  return Object.entries(SECTIONS).reduce(
    (result, [name, table]) =>
      result.includes(`<!-- ${name} -->`) ? withSection(result, name, table()) : result,
    text,
  );
}
