import { el } from '../../dom.js';
import { type Attachment, isPicture, sizeWords } from './attachment.js';
import { thumbnail } from './thumbnail.js';

/** The attachments of a question in the conversation: each opens in full. */
export function attachmentList(
  attachments: readonly Attachment[],
  open: (attachment: Attachment) => void,
): HTMLElement {
  const items = attachments.map((one) =>
    el('li', {}, [one.content === null ? goneOf(one) : buttonOf(one, open)]),
  );
  return el('ul', { class: 'attachments', 'aria-label': 'Attachments' }, items);
}

function buttonOf(attachment: Attachment, open: (attachment: Attachment) => void): HTMLElement {
  const title = `Open ${attachment.name}`;
  const shown = isPicture(attachment)
    ? { class: 'attachment attachment-picture', 'aria-label': `${title}, ${sizeWords(attachment)}` }
    : { class: 'attachment attachment-text' };
  const words = isPicture(attachment) ? [] : [wordsOf(attachment)];
  const attributes = { ...shown, type: 'button', title };
  return el('button', attributes, [thumbnail(attachment), ...words], { click: () => open(attachment) });
}

function goneOf(attachment: Attachment): HTMLElement {
  return el('span', { class: 'attachment attachment-gone' }, [
    thumbnail(attachment),
    wordsOf(attachment, 'not kept in this browser'),
  ]);
}

/** Its name, and its size or something else. */
export function wordsOf(attachment: Attachment, words = sizeWords(attachment)): HTMLElement {
  return el('span', { class: 'attachment-words' }, [
    el('span', { class: 'attachment-name' }, [attachment.name]),
    el('small', {}, [words]),
  ]);
}
