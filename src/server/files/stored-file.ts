/** What a file is for, by OpenAI's names. Batches read files, and some may be pictures; others are stored alone. */
export const UPLOAD_PURPOSES = ['batch', 'assistants', 'fine-tune', 'vision', 'user_data', 'evals'] as const;
export type FilePurpose = (typeof UPLOAD_PURPOSES)[number] | 'batch_output';

/** A stored file. Times are in seconds since 1970. */
export interface StoredFile {
  id: string;
  /** Name of the API key that it belongs to. */
  owner: string;
  bytes: number;
  createdAt: number;
  expiresAt: number;
  /** The client's name for it, which is no path here. */
  filename: string;
  purpose: FilePurpose;
}

/** The file as clients see it. */
export function fileJson({ id, bytes, createdAt, expiresAt, filename, purpose }: StoredFile) {
  return {
    id,
    object: 'file',
    bytes,
    created_at: createdAt,
    expires_at: expiresAt,
    filename,
    purpose,
    status: 'processed',
    status_details: null,
  };
}

/** A file's id, which is its name in the folder. */
export const FILE_ID = /^file-[0-9a-f]{32}$/;

/** The stored file of a record's text; null where it is not one of this server's. */
export function readStoredFile(text: string, id: string): StoredFile | null {
  try {
    const { owner, bytes, createdAt, expiresAt, filename, purpose, ...rest } = JSON.parse(text) as StoredFile;
    const isWhole =
      FILE_ID.test(id) &&
      rest.id === id &&
      [bytes, createdAt, expiresAt].every((value) => Number.isSafeInteger(value) && value >= 0) &&
      [owner, filename].every((value) => typeof value === 'string') &&
      [...UPLOAD_PURPOSES, 'batch_output'].includes(purpose) &&
      // Half a character cannot be in a header.
      encodeURIComponent(filename) !== null;
    return isWhole ? { id, owner, bytes, createdAt, expiresAt, filename, purpose } : null;
  } catch {
    return null;
  }
}
