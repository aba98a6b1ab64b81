import { option, says } from '../../base/named-text.js';
import { DEFAULT_DISK_CACHE_BYTES } from '../../callbacks/options/kv-cache-options.js';
import { ParameterError } from '../../callbacks/sampling-params.js';
import type { WorkerData } from '../../callbacks/worker-data.js';
import { cacheIdentity } from '../building/engine-fingerprint.js';
import { type BlockFormat, fileBytes, stateKey } from '../disk-cache/block-file.js';
import { DiskThread } from '../disk-cache/disk-thread.js';
import type { Executor } from '../executors/executor.js';

/** Why an engine keeps no blocks on a disk although it was told to. The message is a sentence. */
export type NoDisk = Error;

/**
 * Starts the thread of an engine's folder for blocks. null: the options name none.
 * @param digest see engineDigest; '': the engine's content is not known, so its blocks are of use to no later one
 * @returns an error where the executor's blocks cannot be kept
 * @throws ParameterError where the folder may not even hold one block
 */
export function openDisk(
  { kvCacheConfig = {} }: WorkerData['params'],
  executor: Executor,
  digest: string,
  doorbell: SharedArrayBuffer,
): DiskThread | NoDisk | null {
  const { diskCachePath: path, diskCacheSize: maxBytes = DEFAULT_DISK_CACHE_BYTES } = kvCacheConfig;
  if (path === undefined) return null;
  const { blockAccess: access } = executor;
  if (access === undefined)
    return new Error(noDisk(path, `the executor (${executor.name}) gives no blocks here`));
  const { bytesPerBlock, states } = access;
  if (bytesPerBlock === 0)
    return new Error(noDisk(path, 'no layer attends, so there is nothing in the blocks'));
  const hasStates = (executor.options.numStateSlots ?? 0) > 0;
  if (hasStates && states === undefined)
    return new Error(noDisk(path, `the executor (${executor.name}) gives no states here`));
  if (digest === '') return new Error(noDisk(path, 'the content of the engine is not known'));
  const identity = cacheIdentity(digest, executor);
  const format = { identity, bytesPerBlock, bytesPerState: states?.bytesPerSlot ?? 0 };
  checkRoom(maxBytes, format, executor.options.tokensPerBlock);
  return new DiskThread({ path, maxBytes, format, doorbell });
}

/** Of use is the first block of a prompt at least, with the states behind it. */
function checkRoom(maxBytes: number, format: BlockFormat, tokensPerBlock: number): void {
  const ofStates = format.bytesPerState === 0 ? 0 : fileBytes(format, stateKey(0), tokensPerBlock);
  const least = fileBytes(format, 0, tokensPerBlock) + ofStates;
  if (maxBytes >= least) return;
  const what = ofStates === 0 ? '' : ' and the states behind it';
  throw new ParameterError(
    'kvCacheConfig.diskCacheSize',
    says`${option('kvCacheConfig.diskCacheSize')} is ${maxBytes}; the files of one KV cache block${what} take ${least} bytes.`,
  );
}

function noDisk(path: string, why: string): string {
  return `No blocks of the KV cache are kept in ${path}: ${why}.`;
}
