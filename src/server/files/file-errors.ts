import { StoreError } from '../../../base/store-errors.js';
import { writeReasonOfCode } from '../../../base/system-problem.js';
import { ApiError } from '../web/errors.js';

export function fileNotFound(id: string, param: string | null = null): ApiError {
  return new ApiError(404, `There is no file '${id}': it was never stored, was deleted, or has expired.`, {
    param,
    code: 'file_not_found',
  });
}

export function fileTooLong(maxBytes: number): ApiError {
  return new ApiError(413, `The file is longer than ${maxBytes} bytes (--max-file-bytes).`, {
    param: 'file',
    code: 'file_too_large',
  });
}

/** @param lack what is in the way */
export function noRoomForFile(lack: string): ApiError {
  return new ApiError(413, `There is no room for the file: ${lack}; delete some.`, {
    param: 'file',
    code: 'storage_full',
  });
}

export function fileInUse(id: string): ApiError {
  return new ApiError(
    400,
    `The file '${id}' is the input of a batch that has not ended; cancel that, or wait for it.`,
    { code: 'file_in_use' },
  );
}

/** An error of the disk, without the paths that it names: those are in the log, with its cause. */
export function notStored(error: unknown): ApiError {
  const reason = writeReasonOfCode(error) ?? 'the system refuses it';
  return new ApiError(503, `The file cannot be stored: ${reason}.`, { code: 'storage_failed', cause: error });
}

/** The same of an error of the disk alone: others say already what is wrong. */
export function orNotStored(error: unknown): unknown {
  return error instanceof ApiError || error instanceof StoreError ? error : notStored(error);
}
