/** The full blocks at the beginning of a prompt, as engines tell each other of them. */
export interface PromptBlocks extends ReuseKey {
  tokens: Int32Array;
}

/** Sequences with different keys share no block. */
export interface ReuseKey {
  /** 0n: no salt. */
  readonly salt: bigint;
  /** Task id of the LoRA adapter that keys and values were computed with; null or absent: none. */
  readonly loraId?: bigint | null;
}

/**
 * Hashes of the full blocks that a cache may have of a prompt, the first one first: the same in every process, so that others can tell
 * from a cache's events how much of a prompt it has. The last token is never found in a cache, because its logits are needed.
 */
export function promptHashes(key: ReuseKey, tokens: ArrayLike<number>, tokensPerBlock: number): number[] {
  const hashes: number[] = [];
  let hash = rootHash(key);
  for (let start = 0; start + tokensPerBlock < tokens.length; start += tokensPerBlock) {
    hash = chainHash(hash, tokens, start, tokensPerBlock);
    hashes.push(hash);
  }
  return hashes;
}

/** Hash of the root of a salt and an adapter. */
export function rootHash({ salt, loraId = null }: ReuseKey): number {
  const words = Int32Array.from([salt, ...(loraId === null ? [] : [loraId])].flatMap(wordsOf));
  return chainHash(0, words, 0, words.length);
}

/** Both halves of 64 bits. */
function wordsOf(value: bigint): [low: number, high: number] {
  return [Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n))];
}

/** 53 bits of two multiplicative hashes over the parent's hash and the tokens: a safe integer. */
export function chainHash(
  parentHash: number,
  tokens: ArrayLike<number>,
  start: number,
  length: number,
): number {
  let low = mix(0x811c9dc5, parentHash | 0);
  let high = mix(0x9e3779b9, Math.floor(parentHash / 2 ** 32) + 1);
  for (let index = start; index < start + length; index += 1) {
    low = mix(low, tokens[index]!);
    high = mix(high, tokens[index]! ^ low);
  }
  return (high >>> 11) * 2 ** 32 + (low >>> 0);
}

function mix(hash: number, value: number): number {
  let h = Math.imul(hash ^ value, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}
