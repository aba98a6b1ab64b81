import { realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, sep } from 'node:path';
import { isBelow } from '../../../models/checkpoints/open-only-below.js';
import { ApiError } from '../web/errors.js';

/** An adapter in the folder from which clients may load some. */
export interface FolderAdapter {
  /** Path without links. */
  path: string;
  /** The folder, with links resolved: each file is checked against it once it is open. */
  root: string;
  /** Words of an error without the folder's own path, which clients need not know. */
  inFolder(text: string): string;
}

/**
 * The adapter of a path that a client gave: below the folder, links followed.
 *
 * @param folder that of --lora-dir @param path relative to it, or absolute @throws ApiError 403, 404
 */
export async function adapterInFolder(folder: string, path: string): Promise<FolderAdapter> {
  const root = (await realOf(folder)) ?? folder;
  const whole = isAbsolute(path) ? path : join(root, path);
  // The answer does not reveal whether something exists outside the folder.
  if (!isBelow(root, whole) && !isBelow(folder, whole)) throw outside(path);
  const real = await realOf(whole);
  if (real === null && (await leadsInto(root, dirname(whole)))) throw notFound(path);
  if (real === null || !isBelow(root, real)) throw outside(path);
  return { path: real, root, inFolder: (text) => text.replaceAll(root + sep, '') };
}

/** The path without links; null: there is nothing. */
async function realOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    return null;
  }
}

/** What is there of the path, links followed, lies in the folder or is the folder. */
async function leadsInto(root: string, path: string): Promise<boolean> {
  const real = await realOf(path);
  if (real !== null) return real === root || isBelow(root, real);
  return dirname(path) !== path && leadsInto(root, dirname(path));
}

function notFound(path: string): ApiError {
  return new ApiError(404, `There is no adapter '${path}' in the folder of --lora-dir.`, {
    param: 'lora_path',
    code: 'lora_path_not_found',
  });
}

export function outside(path: string): ApiError {
  return new ApiError(403, `'lora_path' is '${path}', which is not in the folder of --lora-dir.`, {
    type: 'permission_error',
    param: 'lora_path',
    code: 'lora_path_not_allowed',
  });
}
