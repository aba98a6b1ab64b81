import { flagsTable, optionsTable } from '../src/config-options.js';

/**
 * A Markdown text with its tables of options made anew: each stands between `<!-- NAME -->` and `<!-- /NAME -->`,
 * where NAME is flags or options.
 */
export function withOptionTables(text: string): string {
  const tables = { flags: flagsTable, options: optionsTable };
  return Object.entries(tables).reduce(
    (result, [name, table]) =>
      result.replace(
        new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(\n<!-- /${name} -->)`),
        (_, begin: string, end: string) => `${begin}\n${table()}\n${end}`,
      ),
    text,
  );
}
