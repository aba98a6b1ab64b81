import { el, icon } from '../../dom.js';
import { type Attachment, fileOf, isPicture, type Picture } from './attachment.js';

const TEXT = ['M4 1.5h5.5L13 5v9.5H4z', 'M9.5 1.5V5H13', 'M6.5 8.5h4M6.5 11h4'];

/** A picture, or the sign of a text, without words: those are next to it. */
export function thumbnail(attachment: Attachment): Element {
  const image = isPicture(attachment) ? imageOf(attachment, '') : null;
  return image ?? el('span', { class: 'thumbnail-sign' }, [icon(...TEXT)]);
}

/** An image of a picture; null where its file is not here. @param alt says what it is */
export function imageOf(picture: Picture, alt: string): HTMLImageElement | null {
  const file = fileOf(picture);
  if (file === null) return null;
  const { width, height } = picture;
  const url = URL.createObjectURL(file);
  // Once it is shown the image has its bytes itself.
  const release = () => URL.revokeObjectURL(url);
  const on = { load: release, error: release };
  return el('img', { src: url, alt, width, height, draggable: 'false' }, [], on);
}
