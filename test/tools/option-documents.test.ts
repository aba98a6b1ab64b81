import { describe, expect, it } from 'vitest';
import { ENGINE_TABLE } from '../../callbacks/options/table.js';
import { defaultText, flagName, OPTIONS, variableName } from '../../src/options/table.js';
import { flagsTables, formerNamesTable, managerTable, namesTable } from '../../tools/option-documents.js';
import { DOCUMENTS, withOptionTables } from '../../tools/option-tables.js';
import { readDocument } from '../support/documents.js';

const rowsOf = (table: string) => table.split('\n').filter((line) => line.startsWith('| '));
const widthsOf = (table: string) =>
  new Set(rowsOf(table).map((line) => line.replaceAll('\\|', '').split('|').length));

describe('the tables of options', () => {
  it('have one row for every option, with its names, its unit and its default', () => {
    const rows = rowsOf(flagsTables());
    for (const option of OPTIONS) {
      const { name, flag } = option;
      const start = `| \`--${flagName(name)}\` | \`${variableName(name)}\` | ${flag.unit ?? ''} | ${defaultText(option)} |`;
      expect(
        rows.filter(
          (row) => row.startsWith(start.replace('  |', ' |').replace('  |', ' |')) || row.startsWith(start),
        ),
        name,
      ).toHaveLength(1);
    }
    expect(widthsOf(flagsTables())).toEqual(new Set([7]));
  });

  it('show what GptManager takes, with the defaults that it has', () => {
    const rows = rowsOf(managerTable()).slice(1);
    expect(rows).toHaveLength(ENGINE_TABLE.length);
    expect(rows).toContainEqual(
      expect.stringMatching(
        /^\| `optionalParams\.kvCacheConfig\.enableBlockReuse` \| false \| as `--prefix-caching` \|$/,
      ),
    );
    expect(widthsOf(managerTable()).size).toBe(1);
  });

  it('name what TensorRT-LLM calls otherwise', () => {
    expect(namesTable()).toContain('| `optionalParams.maxSeqLen` | `max_seq_len` |');
    expect(namesTable()).not.toContain('enableBlockReuse');
  });

  it('tell what was renamed', () => {
    expect(formerNamesTable()).toContain('| `--max-tokens` | `--kv-cache-tokens` |');
    expect(formerNamesTable()).toContain('| `--enable-trt-overlap` | `--micro-batch-overlap` |');
  });

  it.each(DOCUMENTS)('in %s are up to date (npx tsx tools/write-option-tables.ts)', (name) => {
    const text = readDocument(name);
    expect(withOptionTables(text)).toBe(text);
    if (name === 'docs/options.md') expect(text).toContain(flagsTables());
  });
});
