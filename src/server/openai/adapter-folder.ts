import { realpath } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { adapterFiles } from '../../../models/adapters/open-adapter.js';
import { CheckpointError } from '../../../models/checkpoints/checkpoint.js';
import { ApiError } from './errors.js';

/** An adapter in the folder from which clients may load some. */
export interface FolderAdapter {
  /** Path without links. */
  path: string;
  /** Words of an error without the folder's own path, which clients need not know. */
  inFolder(text: string): string;
}

/**
 * The adapter of a path that a client gave: below the folder, links followed.
 *
 * @param folder that of --lora-dir @param path relative to it, or absolute @throws ApiError 403, 404
 */
export async function adapterInFolder(folder: string, path: string): Promise<FolderAdapter> {
  const root = await found(folder, path);
  const whole = isAbsolute(path) ? path : join(root, path);
  // Whether there is something outside of the folder is not told.
  if (!isBelow(root, whole) && !isBelow(folder, whole)) throw outside(path);
  const real = await found(whole, path);
  const files = await Promise.all(filesOf(real).map((file) => found(file, path)));
  if (![real, ...files].every((one) => isBelow(root, one))) throw outside(path);
  return { path: real, inFolder: (text) => text.replaceAll(root + sep, '') };
}

/** Files that would be read, which may be links. */
function filesOf(adapter: string): string[] {
  try {
    return adapterFiles(adapter);
  } catch (error) {
    if (error instanceof CheckpointError) return []; // said where it is read
    throw error;
  }
}

function isBelow(folder: string, path: string): boolean {
  const way = relative(folder, path);
  return way !== '' && way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function found(path: string, asked: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    throw new ApiError(404, `There is no adapter '${asked}' in the folder of --lora-dir.`, {
      param: 'lora_path',
      code: 'lora_path_not_found',
    });
  }
}

function outside(path: string): ApiError {
  return new ApiError(403, `'lora_path' is '${path}', which is not in the folder of --lora-dir.`, {
    type: 'permission_error',
    param: 'lora_path',
    code: 'lora_path_not_allowed',
  });
}
