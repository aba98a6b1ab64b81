import type { TowerConfig } from '../models/towers/tower-config.js';
import type { ExecutorMemory } from './worker-messages.js';

/** One picture as its patches: rows of numbers as preprocessing makes them. */
export interface TowerPicture {
  /** [rows x columns of the grid, patchWidth], in the order that TowerConfig.inSquares says. */
  patches: Float32Array;
  grid: { rows: number; columns: number };
}

/** Limits of one batch. */
export interface TowerLimits {
  /** Most patches of all pictures of a batch together, and of one picture. */
  maxPatches: number;
  maxPictures: number;
}

/** Properties of the running tower, known once it is loaded. */
export interface TowerInfo {
  /** Digest of its weights and configuration, the same on every machine. */
  digest: string;
  executor: string;
  /** See EngineInfo. */
  executorFallback: string | null;
  instructionSet: string;
  threads: number;
  config: TowerConfig;
  /** Width of the rows that pictures become. */
  rowWidth: number;
  limits: TowerLimits;
  memory: ExecutorMemory;
  loadMs: number;
}
