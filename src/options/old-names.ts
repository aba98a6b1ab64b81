import { flagName, OPTIONS, type OptionName, variableName } from './table.js';

/** Of other servers, what looks like an option of this one and means something else: the option, and why it is not that. */
const OTHER_THINGS: Readonly<Record<string, { option: OptionName; why: string }>> = {
  gpuMemoryUtilization: {
    option: 'memoryFraction',
    why: 'it is a share of all memory, and here one gives a share of what is free after loading',
  },
};

const ALIASES = new Map(
  OPTIONS.flatMap(({ name, flag }) => (flag.aliases ?? []).map((alias) => [alias, name])),
);

const FORMER = new Map(OPTIONS.flatMap(({ name, flag }) => (flag.formerly ? [[flag.formerly, name]] : [])));

/** The option that goes by a name: its own, or one of its aliases. Words of a name may be parted by dashes. */
export function optionCalled(name: string): OptionName | null {
  const key = camelCase(name);
  return OPTIONS.find((option) => option.name === key)?.name ?? ALIASES.get(key) ?? null;
}

/** max-batch-tokens -> maxBatchTokens. */
export function camelCase(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/**
 * What to say of a name that there was, or that means something else elsewhere; null: neither.
 * @param spelled how names are spelled where this one stands.
 */
export function refusalOf(name: string, spelled: (option: string) => string): string | null {
  const key = camelCase(name);
  const now = FORMER.get(key);
  if (now !== undefined) return `${spelled(key)} is called ${spelled(now)} now.`;
  const other = OTHER_THINGS[key];
  if (other === undefined) return null;
  return `${spelled(key)} is no option here, since ${other.why}; ${spelled(other.option)} is that share.`;
}

/**
 * What to say of a flag that was, such as `--max-tokens` or `--no-enable-block-reuse`.
 * @param flags those of the command, which may know nothing of the option.
 */
export function refusalOfFlag(flag: string, flags: readonly string[]): string | null {
  const [, no = '', name = ''] = /^--(no-)?(.*?)(=.*)?$/.exec(flag) ?? [];
  const refusal = refusalOf(name, (option) => `--${no}${flagName(option)}`);
  return refusal !== null && flags.some((one) => refusal.includes(` ${one} `)) ? refusal : null;
}

/** Variables that were: a sentence for the first that is set. */
export function refusalOfVariables(environment: Readonly<Record<string, string | undefined>>): string | null {
  for (const key of [...FORMER.keys(), ...Object.keys(OTHER_THINGS)]) {
    if (environment[variableName(key)]) return refusalOf(key, variableName);
  }
  return null;
}

/** Variables that are told of where options are read. */
export const FORMER_VARIABLES: readonly string[] = [...FORMER.keys(), ...Object.keys(OTHER_THINGS)].map(
  variableName,
);
