import type { ExecutorName } from '../../callbacks/gpt-manager-options.js';

/**
 * Milliseconds for the chunks of long prompts (OptionalParams.maxChunkMs: 'auto') on each executor. The same bound is
 * another number of tokens on each, and a chunk of few tokens costs each another part of what is paid once a step.
 */
export const CHUNK_MS: Readonly<Record<ExecutorName, number>> = {
  native: 50,
  tensorflow: 100,
  wasm: 200,
};

/** What a `maxChunkMs` comes to on an executor; one of a user's own counts as native. */
export function chunkMsOn(executor: string, maxChunkMs: number | 'auto' | undefined): number | undefined {
  if (maxChunkMs !== 'auto') return maxChunkMs;
  return Object.hasOwn(CHUNK_MS, executor) ? CHUNK_MS[executor as ExecutorName] : CHUNK_MS.native;
}

/** For a user: "50; tensorflow ...". */
export function chunkMsText(): string {
  const { native, ...others } = CHUNK_MS;
  return [native, ...Object.entries(others).map(([name, ms]) => `${name} ${ms}`)].join('; ');
}
