import { readFileSync, statSync } from 'node:fs';
import { option, says } from '../../base/named-text.js';
import { isShared, parseGroupAddress } from '../../callbacks/group-address.js';
import type { RanksOptions } from '../../callbacks/ranks-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import { fileProblem } from '../errors/file-problem.js';

const MIN_CHARACTERS = 16;

interface RanksElsewhere {
  ranksAddress?: string | undefined;
  ranksSecretFile?: string | undefined;
  joinTimeoutSeconds?: number | undefined;
  tensorParallelSize?: number | undefined;
  pipelineParallelSize?: number | undefined;
}

/** The place of a server in a group whose other ranks are started elsewhere; undefined: there is no address for them. @throws ParameterError */
export function leadingRank(options: RanksElsewhere): RanksOptions | undefined {
  const {
    ranksAddress: address,
    ranksSecretFile,
    joinTimeoutSeconds,
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
  const place: RanksOptions = {
    rank: 0,
    size,
    address,
    ...(joinTimeoutSeconds === undefined ? {} : { joinTimeoutMs: 1000 * joinTimeoutSeconds }),
  };
  if (ranksSecretFile !== undefined)
    return { ...place, secret: readSecret('ranksSecretFile', ranksSecretFile) };
  if (isShared(parseGroupAddress(address))) return place;
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
  if (secret.length >= MIN_CHARACTERS) return secret;
  throw new ParameterError(
    name,
    says`The file of ${option(name)}, ${path}, has ${secret.length} characters; a secret has at least ${MIN_CHARACTERS}.`,
  );
}

/** Permission to read a file for users that are neither its owner nor of its group. */
const OTHERS_READ = 0o004;

/**
 * A warning where every user of the machine can read a secret, as a sentence; null: they cannot, or that is
 * unknown.
 */
export function openSecret(path: string): string | null {
  const { mode } = statSync(path, { throwIfNoEntry: false }) ?? { mode: 0 };
  if ((mode & OTHERS_READ) === 0) return null;
  return `Every user of this machine can read the secret of the ranks in ${path}; chmod 600 keeps it secret.`;
}
