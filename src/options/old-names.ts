import { flagName, OPTIONS, type OptionName, variableName } from './table.js';

/**
 * Options of other servers that look like one of this server and mean something else: the similar option, the difference, and what the
 * similar one does.
 */
const OTHER_THINGS: Readonly<Record<string, { option: OptionName; why: string; does: string }>> = {
  gpuMemoryUtilization: {
    option: 'memoryFraction',
    why: 'it is a share of all memory, and here one gives a share of what is free after loading',
    does: 'is that share',
  },
  maxCpuLoras: {
    option: 'loraCacheBytes',
    why: 'it is a number of adapters, and here their memory has a limit',
    does: 'is that limit',
  },
};

const ALIASES = new Map(
  OPTIONS.flatMap(({ name, flag }) => (flag.aliases ?? []).map((alias) => [alias, name])),
);

const FORMER = new Map(OPTIONS.flatMap(({ name, flag }) => (flag.formerly ? [[flag.formerly, name]] : [])));

/** The option with this name or alias. Words of a name may be separated by dashes. */
export function optionCalled(name: string): OptionName | null {
  const key = camelCase(name);
  return OPTIONS.find((option) => option.name === key)?.name ?? ALIASES.get(key) ?? null;
}

/** Converts max-batch-tokens to maxBatchTokens. */
function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * A refusal of a former name, or of one that means something else elsewhere; null: the name is neither.
 * @param spelled spells an option's name as its source does.
 */
export function refusalOf(name: string, spelled: (option: string) => string): string | null {
  const key = camelCase(name);
  const now = FORMER.get(key);
  if (now !== undefined) return `${spelled(key)} is called ${spelled(now)} now.`;
  const other = OTHER_THINGS[key];
  if (other === undefined) return null;
  return `${spelled(key)} is no option here, since ${other.why}; ${spelled(other.option)} ${other.does}.`;
}

/**
 * A refusal of a former flag, such as `--max-tokens` or `--no-enable-block-reuse`.
 * @param flags the command's flags, which may not include the option.
 */
export function refusalOfFlag(flag: string, flags: readonly string[]): string | null {
  const [, no = '', name = ''] = /^--(no-)?(.*?)(=.*)?$/.exec(flag) ?? [];
  const refusal = refusalOf(name, (option) => `--${no}${flagName(option)}`);
  return refusal !== null && flags.some((one) => refusal.includes(` ${one} `)) ? refusal : null;
}

/** A refusal of the first former variable that is set. */
export function refusalOfVariables(environment: Readonly<Record<string, string | undefined>>): string | null {
  for (const key of [...FORMER.keys(), ...Object.keys(OTHER_THINGS)]) {
    if (environment[variableName(key)]) return refusalOf(key, variableName);
  }
  return null;
}

/** Former variables, which are refused where options are read. */
export const FORMER_VARIABLES: readonly string[] = [...FORMER.keys(), ...Object.keys(OTHER_THINGS)].map(
  variableName,
);
