import type { TokenRequest } from '../../callbacks/token-request.js';
import { saltWithAdapter } from '../../engine/peft/adapter-fingerprint.js';
import { promptHashes } from '../../kvcache/block-hashes.js';
import type { ModelCard } from '../nats/beat.js';
import { hasRowsOfItsOwn } from '../nats/prefill-request.js';

/** Hashes of prompts by models and the tokens in a block: a request keeps its tokens, so they are worked out once. */
const known = new WeakMap<TokenRequest, { key: string; hashes: number[] }>();

function adapterOf({ adapterName }: TokenRequest, { adapters }: ModelCard) {
  return adapterName === undefined ? undefined : adapters.find(({ name }) => name === adapterName);
}

/** What of a worker's model is in the hashes of a request's blocks. */
function keyOf(request: TokenRequest, model: ModelCard): string {
  const { taskId, fingerprint } = adapterOf(request, model)?.blockKey ?? {};
  return `${model.engine.tokensPerBlock} ${taskId} ${fingerprint}`;
}

/** Two workers' blocks of the request have the same hashes. */
export function isHashedAlike(one: ModelCard, other: ModelCard, request: TokenRequest): boolean {
  return one === other || keyOf(request, one) === keyOf(request, other);
}

/** Hashes of the blocks that a worker's cache can have of a request's prompt; none where it is computed as a whole in any case. */
export function hashesOf(request: TokenRequest, model: ModelCard): readonly number[] {
  const key = keyOf(request, model);
  const before = known.get(request);
  if (before?.key === key) return before.hashes;
  const hashes = computed(request, model);
  known.set(request, { key, hashes });
  return hashes;
}

function computed(request: TokenRequest, model: ModelCard): number[] {
  const { promptTokens, positionIds, cacheSalt = 0n } = request;
  if (hasRowsOfItsOwn(request) || positionIds !== undefined) return [];
  // Positions that a cache has have no logits.
  if (request.returnContextLogits === true || request.returnContextLogProbs === true) return [];
  const { tokensPerBlock } = model.engine;
  if (request.adapterName === undefined)
    return promptHashes({ salt: cacheSalt }, promptTokens, tokensPerBlock);
  const key = adapterOf(request, model)?.blockKey;
  if (key === undefined) return [];
  const salt = saltWithAdapter(cacheSalt, key.fingerprint);
  return promptHashes({ salt, loraId: BigInt(key.taskId) }, promptTokens, tokensPerBlock);
}
