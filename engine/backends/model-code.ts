import { realpathSync } from 'node:fs';
import { sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cutText } from '../../base/error-text.js';
import { LONGEST_MESSAGE } from '../../callbacks/infer/request-limits.js';
import { BackendError, type ModelFiles } from './backend.js';
import { boundedError, isOwn, keepFrames, thrownFrames, thrownText } from './thrown.js';

/** Characters of a stack in which a frame of the model is looked for. */
const LONGEST_SEARCH = 65_536;

/**
 * Code of a model, and where in it an error comes from. Files are named as they lie in the version's folder, or else in the model's: the
 * server's own paths are hidden from the model's clients.
 *
 *   at work (file:///srv/models/squares/1/model.mjs:12:9)   ->   model.mjs:12:9
 *                  '---- the version's folder ----'
 */
export class ModelCode {
  /** Beginnings of paths and URLs of files of the model, the longest first. */
  readonly #folders: readonly string[];

  constructor({ directory, versionDirectory }: ModelFiles) {
    const given = [versionDirectory, directory];
    const folders = [...given.map(realPath), ...given].map((path) =>
      path.endsWith(sep) ? path : path + sep,
    );
    const names = folders.flatMap((path) => [pathToFileURL(path).href, path]);
    this.#folders = [...new Set(names)].sort((a, b) => b.length - a.length);
  }

  /**
   * An error of the code: "WHAT at model.mjs:12:9: MESSAGE", whose stack has the frames and the causes. Within bounds, whatever was thrown. Never throws.
   * @param place where it is known already
   */
  failure(what: string, thrown: unknown, place = this.placeOf(thrown)): BackendError {
    const at = place === null ? '' : ` at ${place}`;
    const error = new BackendError(`${what}${at}: ${this.withoutPaths(thrownText(thrown))}`);
    keepFrames(error, thrown);
    return error;
  }

  /** What ends the worker. An error of this package says itself what happened. */
  uncaught(thrown: unknown): Error {
    return isOwn(thrown) ? boundedError(thrown) : this.failure('uncaught error', thrown);
  }

  /** File, line and column of the first frame in the model's own files, before those of libraries that lie there; null: there is none. */
  placeOf(thrown: unknown): string | null {
    const frames = thrownFrames(thrown).slice(0, LONGEST_SEARCH).split('\n');
    const places = frames.map((frame) => this.#placeIn(frame)).filter((place) => place !== null);
    return places.find((place) => !place.includes('node_modules/')) ?? places[0] ?? null;
  }

  /** A file's URL or path as it lies in the model's folder; null: it is not there. */
  relative(file: string): string | null {
    const folder = this.#folders.find((one) => file.startsWith(one));
    if (folder === undefined) return null;
    const path = file.slice(folder.length);
    return folder.startsWith('file:') ? decoded(path) : path;
  }

  /** A message as those may read it who do not know where the model lies. */
  withoutPaths(message: string): string {
    return this.#folders.reduce(
      (text, folder) => text.replaceAll(folder, ''),
      cutText(message, 2 * LONGEST_MESSAGE),
    );
  }

  /** Of a line such as "    at work (file:///srv/models/squares/1/model.mjs:12:9)". */
  #placeIn(frame: string): string | null {
    if (!frame.trimStart().startsWith('at ')) return null;
    const folder = this.#folders.find((one) => frame.includes(one));
    if (folder === undefined) return null;
    const place = frame.slice(frame.indexOf(folder)).replace(/\)*\s*$/, '');
    return cutText(this.relative(place) ?? place, 500);
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function decoded(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}
