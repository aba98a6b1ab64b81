import { GROUPS } from '../callbacks/options/option.js';
import { ENGINE_TABLE } from '../callbacks/options/table.js';
import {
  defaultText,
  flagName,
  OPTIONS,
  type Option,
  oneOfThese,
  variableName,
} from '../src/options/table.js';

/** A name in a table's cell; null: an empty cell. */
export const code = (name: string | null) => (name === null ? '' : `\`${name}\``);

/** A table with a line of headings. Bars in cells are escaped. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}

/** Markdown tables, by groups, of flags, variables, units, defaults and meanings, for users of the server. */
export function flagsTables(): string {
  const isCommon = ({ flag }: Option) => flag.isCommon ?? false;
  const parts: [string, readonly Option[]][] = [
    ['Common options', OPTIONS.filter(isCommon)],
    ...GROUPS.map((group): [string, readonly Option[]] => [
      group,
      OPTIONS.filter((option) => option.flag.group === group && !isCommon(option)),
    ]),
  ];
  return parts.map(([title, options]) => `### ${title}\n\n${flagsTable(options)}`).join('\n\n');
}

function flagsTable(options: readonly Option[]): string {
  const rows = options.map((option) => {
    const { name, flag, values } = option;
    const meaning = flag.help + oneOfThese(values.choices);
    const aliases = (flag.aliases ?? []).map((alias) => code(`--${flagName(alias)}`));
    const also = aliases.length === 0 ? '' : ` Also ${aliases.join(', ')}.`;
    return [
      code(`--${flagName(name)}`),
      code(variableName(name)),
      flag.unit ?? '',
      defaultText(option),
      meaning + also,
    ];
  });
  return markdownTable(['flag', 'environment', 'unit', 'default', 'meaning'], rows);
}

/** A Markdown table of the options that TensorRT-LLM has under another name than GptManager. */
export function namesTable(): string {
  const rows = ENGINE_TABLE.flatMap(({ path, option: { seedName } }) =>
    seedName === null || path.endsWith(seedName) ? [] : [[code(path), code(seedName)]],
  );
  return markdownTable(['GptManager field', "TensorRT-LLM's name"], rows);
}

/** A Markdown table of every option of GptManager, with its default. The flags' table says what an option means that has a flag. */
export function managerTable(): string {
  const rows = ENGINE_TABLE.map(({ path, option }) => {
    const flag = option.name === null || option.flag === null ? null : `--${flagName(option.name)}`;
    return [code(path), option.defaultText, flag === null ? option.help : `as ${code(flag)}`];
  });
  return markdownTable(['option', 'default', 'meaning'], rows);
}

/** A Markdown table of renamed options. */
export function formerNamesTable(): string {
  const rows = OPTIONS.flatMap(({ name, flag }) =>
    flag.formerly === undefined ? [] : [[code(`--${flagName(flag.formerly)}`), code(`--${flagName(name)}`)]],
  );
  return markdownTable(['was', 'is'], rows);
}
