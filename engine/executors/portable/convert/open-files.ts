import { PositionedFile } from './positioned-file.js';

/** Files of a checkpoint that are open for reading, each once. */
export class OpenFiles {
  readonly #files = new Map<string, PositionedFile>();

  /** The file of this path. Throws one sentence if it cannot be opened. */
  at(path: string): PositionedFile {
    const file = this.#files.get(path) ?? PositionedFile.forReading(path);
    this.#files.set(path, file);
    return file;
  }

  close(): void {
    for (const file of this.#files.values()) file.close();
  }
}
