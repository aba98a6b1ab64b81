/** A record as it was read: the same object as long as it is not changed. */
export interface StoredRecord {
  key: string;
  text: string;
  /** Grows with each change. */
  revision: number;
}

/**
 * Short texts by key: in memory, in a folder, or in a NATS server that gateways share. Keys are words of letters, digits, - and _ with
 * dots between them. All throw a StoreError or an error of the system where the store cannot be reached.
 */
export interface RecordStore {
  get(key: string): Promise<StoredRecord | null>;
  /**
   * Writes a record in place of the one of this revision; 0: there is none.
   * @returns its revision; null: another writer was faster, and nothing is written
   */
  put(key: string, text: string, revision: number): Promise<number | null>;
  /** False where there is none. */
  remove(key: string): Promise<boolean>;
  /** All records, or those whose keys begin with these words, in no order. */
  list(words?: string): Promise<readonly StoredRecord[]>;
}

/** Longer contents by id, which grow at their end. An id has letters, digits, - and _. */
export interface ContentStore {
  /** Begins a content, which cannot be found before it is finished. */
  begin(id: string): Promise<ContentWriter>;
  /**
   * Continues a content, or begins it: everything after its first `keepBytes` bytes is removed. It can be
   * read as it grows.
   */
  goOn(id: string, keepBytes: number): Promise<ContentWriter>;
  /**
   * The current bytes of a content, starting at `from`, which is the end of a piece; null: there is none.
   * Fails where it has fewer than `least` bytes. A reader that has started reads the file to its end.
   */
  read(id: string, from?: number, least?: number): Promise<AsyncIterable<Buffer> | null>;
  size(id: string): Promise<number | null>;
  remove(id: string): Promise<void>;
  /** Ids of all contents, also of those that are being written. */
  ids(): Promise<string[]>;
}

export interface ContentWriter {
  /** Appends bytes. */
  append(bytes: Uint8Array): Promise<void>;
  /** All is stored, and outlives the process. */
  finish(): Promise<void>;
  /** Takes all away that is not finished. Never rejects. */
  discard(): Promise<void>;
}

export type Look = (ids: Iterable<string>) => Promise<Set<string>>;

/** Which of the processes that share a store are there. */
export interface Presence {
  /** Of this process. */
  readonly id: string;
  /** Makes a look for those of the ids whose processes are gone; it has to be taken several times. */
  looker(): Look;
  /** True where a process gives signs of life now. */
  isThere(id: string): Promise<boolean>;
}

/** Stores that several servers share. */
export interface SharedStores {
  files: { records: RecordStore; contents: ContentStore };
  batches: RecordStore;
  /** Responses, conversations, and responses that are being made in the background. */
  responses: RecordStore;
  presence: Presence;
}
