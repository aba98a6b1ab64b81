import { SkeinError } from '../../base/skein-error.js';

/** An error for a picture that is not decoded: its file is of no kind that is read, damaged, or larger than it may be. */
export class PictureError extends SkeinError {
  override name = 'PictureError';
  override readonly code = 'SKEIN_PICTURE';
}

/** An error for more pictures at a time than are taken: the caller may try again later. */
export class PicturesBusyError extends SkeinError {
  override name = 'PicturesBusyError';
  override readonly code = 'SKEIN_PICTURES_BUSY';
}

/** An error for pictures that cannot be decoded here: the decoder's package is missing, or its process ended. */
export class PictureDecoderError extends SkeinError {
  override name = 'PictureDecoderError';
  override readonly code = 'SKEIN_PICTURE_DECODER';
}
