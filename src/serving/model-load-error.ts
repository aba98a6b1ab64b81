import { messageOf } from '../../base/error-text.js';
import { SkeinError } from '../../base/skein-error.js';

/**
 * Why a model that was asked for cannot be had.
 *
 *   tooLarge   it alone does not fit into the bound of memory
 *   tooMany    as many requests as may wait for models do so already
 *   slow       it was not loaded in time, maybe because models in use left no room
 *   failed     its files are wrong, or its engine did not start
 */
export type ModelLoadFault = 'tooLarge' | 'tooMany' | 'slow' | 'failed';

/** A model that was asked for is not there, and was not loaded. */
export class ModelLoadError extends SkeinError {
  override name = 'ModelLoadError';
  override readonly code = 'SKEIN_MODEL_LOAD';

  constructor(
    readonly fault: ModelLoadFault,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Why a model cannot be loaded or read, for clients: they know its name, and nothing of the server's folders. */
export function reasonFor(error: unknown, { name, path }: { name: string; path: string }): string {
  return messageOf(error).replaceAll(path, name);
}
