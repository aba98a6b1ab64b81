import { flagsTable, optionsTable } from '../src/config-options.js';
import { withSection } from './document-section.js';

/**
 * A Markdown text with its tables of options made anew: each stands between `<!-- NAME -->` and `<!-- /NAME -->`,
 * where NAME is flags or options.
 */
export function withOptionTables(text: string): string {
  const tables = { flags: flagsTable, options: optionsTable };
  return Object.entries(tables).reduce(
    (result, [name, table]) =>
      result.includes(`<!-- ${name} -->`) ? withSection(result, name, table()) : result,
    text,
  );
}
