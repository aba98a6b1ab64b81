import { SkeinError } from '../../../../../../base/skein-error.js';

/** An error for a file that is not attached: one sentence for the reader. */
export class AttachmentProblem extends SkeinError {
  override name = 'AttachmentProblem';
  override readonly code = 'SKEIN_PAGE_ATTACHMENT';
}

/** The name of a file in a sentence. */
export const quoted = (name: string): string => `\u201c${name}\u201d`;
