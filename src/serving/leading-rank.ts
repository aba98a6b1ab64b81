import { readFileSync } from 'node:fs';
import { option, says } from '../../base/named-text.js';
import type { RanksOptions } from '../../callbacks/ranks-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { fileProblem } from '../file-problem.js';

const LEAST_CHARACTERS = 16;

interface RanksElsewhere {
  ranksAddress?: string | undefined;
  ranksSecretFile?: string | undefined;
  tensorParallelSize?: number | undefined;
  pipelineParallelSize?: number | undefined;
}

/** The place of a server in a group whose other ranks are started elsewhere; undefined: there is no address for them. @throws ParameterError */
export function leadingRank(options: RanksElsewhere): RanksOptions | undefined {
  const {
    ranksAddress: address,
    ranksSecretFile,
    tensorParallelSize = 1,
    pipelineParallelSize = 1,
  } = options;
  if (address === undefined) {
    if (ranksSecretFile === undefined) return undefined;
    throw new ParameterError(
      'ranksSecretFile',
      says`${option('ranksSecretFile')} needs ${option('ranksAddress')}, where the other ranks come to.`,
    );
  }
  const size = tensorParallelSize * pipelineParallelSize;
  if (size === 1) {
    throw new ParameterError(
      'ranksAddress',
      says`${option('ranksAddress')} needs ${option('tensorParallelSize')} or ${option('pipelineParallelSize')}, which say how many ranks there are.`,
    );
  }
  if (ranksSecretFile !== undefined)
    return { rank: 0, size, address, secret: readSecret('ranksSecretFile', ranksSecretFile) };
  if (address.includes('/')) return { rank: 0, size, address };
  throw new ParameterError(
    'ranksSecretFile',
    says`${option('ranksSecretFile')} is missing: ranks that come to ${address} must prove that they belong to the group.`,
  );
}

/**
 * Reads the secret of a group; white space around it does not count, so that an editor's last line end does no harm.
 *
 * @param name of the option that names the file
 * @throws ParameterError
 */
export function readSecret(name: string, path: string): string {
  let secret: string;
  try {
    secret = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new ParameterError(
      name,
      says`The file of ${option(name)}, ${path}, cannot be read: ${fileProblem(error)}`,
    );
  }
  if (secret.length >= LEAST_CHARACTERS) return secret;
  throw new ParameterError(
    name,
    says`The file of ${option(name)}, ${path}, has ${secret.length} characters; a secret has at least ${LEAST_CHARACTERS}.`,
  );
}
