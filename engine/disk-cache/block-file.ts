import { crc32 } from 'node:zlib';
import type { PromptBlocks } from '../../kvcache/block-hashes.js';

/** Ending of the names of the cache's files; everything else in its folder is left alone. */
const ENDING = '.skein-kv';
const NAME = /^([0-9a-f]{16})-([0-9a-f]{14})(s?)\.skein-kv$/;
const MAGIC = Buffer.from('skein-kv');
/** Number of this layout of files. */
const VERSION = 1;
/** Bytes in front of the tokens. */
const HEADER_BYTES = 80;
/** Bytes of the checksum at the end. */
export const CHECKSUM_BYTES = 4;

/** What all files of an engine have in common: only an engine with the same may read them. */
export interface BlockFormat {
  /** Digest of all that decides the bits of a block [32 bytes, as hexadecimal digits]: see cacheIdentity. */
  identity: string;
  /** Bytes of a block's content. */
  bytesPerBlock: number;
  /** Bytes of the states of a sequence; 0: the model has none. */
  bytesPerState: number;
}

/**
 * Name of what lies on the disk: the hash of a block's chain of tokens (see chainHash), or a number below 0
 * for the states after that block.
 */
export type DiskKey = number;

export function stateKey(hash: number): DiskKey {
  return -1 - hash;
}

export function contentBytes({ bytesPerBlock, bytesPerState }: BlockFormat, key: DiskKey): number {
  return key < 0 ? bytesPerState : bytesPerBlock;
}

/** Bytes of the file that holds a block of `numTokens` tokens, or the states after it. */
export function fileBytes(format: BlockFormat, key: DiskKey, numTokens: number): number {
  return HEADER_BYTES + 4 * numTokens + contentBytes(format, key) + CHECKSUM_BYTES;
}

/**
 * The bytes in front of the content of a block, or of states: who can use it, and for which tokens. A file whose first bytes are others is not that block,
 * whatever its name says: names have a hash, and hashes can be equal by accident.
 *
 *    0  "skein-kv"                    8 bytes
 *    8  version                       u32
 *   12  tokens, from the first one    u32
 *   16  bytes of the content          u64
 *   24  salt                          u64
 *   32  task of the adapter           u64
 *   40  1: there is an adapter        u32
 *   44  0: a block, 1: states         u32
 *   48  identity of the engine        32 bytes
 *   80  the tokens                    i32 each
 *       content, and the CRC-32 of all bytes in front of it (u32)
 *
 * All numbers have the least byte first.
 */
export function blockPrefix(format: BlockFormat, key: DiskKey, chain: PromptBlocks): Buffer {
  const { tokens, salt, loraId = null } = chain;
  const prefix = Buffer.alloc(HEADER_BYTES + 4 * tokens.length);
  MAGIC.copy(prefix);
  prefix.writeUInt32LE(VERSION, 8);
  prefix.writeUInt32LE(tokens.length, 12);
  prefix.writeBigUInt64LE(BigInt(contentBytes(format, key)), 16);
  prefix.writeBigUInt64LE(BigInt.asUintN(64, salt), 24);
  prefix.writeBigUInt64LE(BigInt.asUintN(64, loraId ?? 0n), 32);
  prefix.writeUInt32LE(loraId === null ? 0 : 1, 40);
  prefix.writeUInt32LE(key < 0 ? 1 : 0, 44);
  Buffer.from(format.identity, 'hex').copy(prefix, 48);
  for (let i = 0; i < tokens.length; i++) prefix.writeInt32LE(tokens[i]!, HEADER_BYTES + 4 * i);
  return prefix;
}

/** The checksum of a file's parts. */
export function checksumOf(prefix: Uint8Array, content: Uint8Array): Buffer {
  const sum = Buffer.alloc(CHECKSUM_BYTES);
  sum.writeUInt32LE(crc32(content, crc32(prefix)));
  return sum;
}

export function blockFileName({ identity }: Pick<BlockFormat, 'identity'>, key: DiskKey): string {
  const hash = key < 0 ? stateKey(key) : key;
  return `${identity.slice(0, 16)}-${hash.toString(16).padStart(14, '0')}${key < 0 ? 's' : ''}${ENDING}`;
}

/** Name that a file has until it is whole; of a writer of this name. */
export function unfinishedName(name: string, writer: string): string {
  return `${name}.${writer}.part`;
}

/** True for the name of an unfinished file. */
export function isUnfinished(name: string): boolean {
  return /^[0-9a-f]{16}-[0-9a-f]{14}s?\.skein-kv\.[\w-]+\.part$/.test(name);
}

/** The parts of a file's name; null: it is no file of a cache. */
export function parseName(name: string): { identity: string; key: DiskKey } | null {
  const [, identity, digits, isState] = NAME.exec(name) ?? [];
  if (identity === undefined || digits === undefined) return null;
  const hash = Number.parseInt(digits, 16);
  return { identity, key: isState === '' ? hash : stateKey(hash) };
}
