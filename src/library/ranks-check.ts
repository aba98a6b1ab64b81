import { inPlainNames } from '../options/flag-names.js';
import { leadingRank, openSecret } from '../serving/leading-rank.js';

const warned = new Set<string>();

/**
 * Checks a program's options of ranks before anything is built or waited for, and warns once of a secret that others can read.
 * @throws ParameterError
 */
export function checkRanksOptions(options: Parameters<typeof leadingRank>[0]): void {
  const { ranksSecretFile } = options;
  try {
    leadingRank(options);
  } catch (error) {
    throw inPlainNames(error);
  }
  const warning = ranksSecretFile === undefined ? null : openSecret(ranksSecretFile);
  if (warning === null || warned.has(warning)) return;
  warned.add(warning);
  process.emitWarning(warning, { type: 'SkeinWarning', code: 'SKEIN_OPEN_SECRET' });
}
