import { MAX_INT32 } from '../../base/int32.js';
import { option, says } from '../../base/named-text.js';
import type { GptManagerOptions } from '../../callbacks/gpt-manager-options.js';
import { parseGroupAddress } from '../../callbacks/group-address.js';
import { ParameterError } from '../../callbacks/sampling-params.js';

const MAX_RANKS = 64;
const FIELDS = ['rank', 'size', 'address', 'secret', 'requests', 'joinTimeoutMs', 'onMissing'];

/** @throws ParameterError for a place in a group, or a number of ranks, that cannot be */
export function checkRanks({
  ranks,
  optionalParams = {},
  callbackModule,
}: Pick<GptManagerOptions, 'ranks' | 'optionalParams' | 'callbackModule'>): void {
  const { tensorParallelSize = 1, pipelineParallelSize = 1, panels = true } = optionalParams;
  const { expertFraction = 1 } = optionalParams;
  const product = tensorParallelSize * pipelineParallelSize;
  if (!panels && (product > 1 || ranks !== undefined)) {
    throw new ParameterError(
      'panels',
      says`${option('panels')} is false, so one process computes with the GGUF as it lies; several ranks need panels of their own.`,
    );
  }
  if (expertFraction < 1 && (product > 1 || ranks !== undefined)) {
    throw new ParameterError(
      'expertFraction',
      says`${option('expertFraction')} is ${expertFraction}, so one process reads experts from the disk; several ranks hold theirs in memory.`,
    );
  }
  if (product > MAX_RANKS) {
    throw refused(
      says`${option('tensorParallelSize')} x ${option('pipelineParallelSize')} is ${product}; at most ${MAX_RANKS} ranks are possible.`,
    );
  }
  if (ranks === undefined) return;
  const unknown = Object.keys(ranks).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined)
    throw refused(
      says`${option('ranks')} has no field ${JSON.stringify(unknown)}; it has ${FIELDS.join(', ')}.`,
    );
  const { rank, size, address, secret, requests = 'rank0', joinTimeoutMs = 1, onMissing } = ranks;
  if (!isWhole(size, 2, MAX_RANKS))
    throw refused(says`${option('ranks.size')} is ${String(size)}; it must be from 2 to ${MAX_RANKS}.`);
  if (!isWhole(rank, 0, size - 1))
    throw refused(
      says`${option('ranks.rank')} is ${String(rank)}; of ${size} ranks it must be from 0 to ${size - 1}.`,
    );
  if (product !== 1 && product !== size) {
    throw refused(
      says`${option('ranks.size')} is ${size}, but ${option('tensorParallelSize')} x ${option('pipelineParallelSize')} is ${product}.`,
    );
  }
  if (typeof address !== 'string' || address === '')
    throw refused(says`${option('ranks.address')} is missing; it must be a path, or host:port of rank 0.`);
  parseGroupAddress(address);
  if (secret !== undefined && (typeof secret !== 'string' || secret.length < 16)) {
    throw refused(says`${option('ranks.secret')} must be a text of at least 16 characters.`);
  }
  if (secret === undefined && !address.includes('/')) {
    throw refused(
      says`${option('ranks.secret')} is missing: ranks that meet at ${address} must prove that they belong to the group.`,
    );
  }
  if (requests !== 'rank0' && requests !== 'everyRank') {
    throw refused(
      says`${option('ranks.requests')} is ${JSON.stringify(requests)}; it must be rank0 or everyRank.`,
    );
  }
  if (requests === 'everyRank' && callbackModule !== undefined) {
    throw refused(
      says`${option('ranks.requests')} is everyRank, which callbacks in a module cannot have; give functions.`,
    );
  }
  if (!isWhole(joinTimeoutMs, 1, MAX_INT32))
    throw refused(says`${option('ranks.joinTimeoutMs')} must be a number of milliseconds.`);
  if (onMissing !== undefined && typeof onMissing !== 'function')
    throw refused(says`${option('ranks.onMissing')} must be a function.`);
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function refused(text: ConstructorParameters<typeof ParameterError>[1]): ParameterError {
  return new ParameterError('ranks', text);
}
