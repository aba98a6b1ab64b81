/** What a file is for, by OpenAI's names. Only batches read files; others are stored alone. */
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

/** A stored file of the text of its record; null where it is none. */
export function readStoredFile(text: string, id: string): StoredFile | null {
  try {
    const file = JSON.parse(text) as StoredFile;
    const isWhole =
      file.id === id &&
      [file.bytes, file.createdAt, file.expiresAt].every(Number.isSafeInteger) &&
      [file.owner, file.filename, file.purpose].every((value) => typeof value === 'string');
    return isWhole ? file : null;
  } catch {
    return null;
  }
}
