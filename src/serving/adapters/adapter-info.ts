import type { ModuleName } from '../../../models/adapters/module-ids.js';

/** A LoRA adapter by which a model answers. */
export interface AdapterInfo {
  readonly name: string;
  /** Path of its files on this machine. */
  readonly path: string;
  /** Greatest rank of its modules. */
  readonly rank: number;
  /** Modules that it changes in at least one layer, by TensorRT-LLM's names. */
  readonly modules: readonly ModuleName[];
  /** Bytes of its weights in float32. */
  readonly bytes: number;
  /** Time of loading, in Unix seconds. */
  readonly created: number;
}

/** The fields of an adapter that the program receives: nothing but these. */
export function infoOf({ name, path, rank, modules, bytes, created }: AdapterInfo): AdapterInfo {
  return { name, path, rank, modules, bytes, created };
}
