/** Class of the page while files are held over it. */
const HELD = 'holds-files';

/**
 * Takes files that are pasted into the text, or dropped anywhere on the page: a file that misses its place would else be opened in place of the
 * page.
 * @param dropped what shows that files are held over the page; where it is not to be seen, none are taken
 */
export function onGivenFiles(text: HTMLElement, dropped: HTMLElement, take: (files: File[]) => void): void {
  text.addEventListener('paste', (event) => {
    const { clipboardData: given } = event;
    if (given === null || given.files.length === 0 || isFormatted(given.types)) return;
    event.preventDefault();
    take([...given.files]);
  });
  const hold = (isHeld: boolean) => dropped.classList.toggle(HELD, isHeld);
  document.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    const isTaken = dropped.offsetParent !== null && document.querySelector('dialog[open]') === null;
    event.dataTransfer!.dropEffect = isTaken ? 'copy' : 'none';
    hold(isTaken);
  });
  document.addEventListener('dragleave', (event) => {
    // Nothing is entered: they have left the page.
    if (event.relatedTarget === null) hold(false);
  });
  document.addEventListener('drop', (event) => {
    hold(false);
    if (!hasFiles(event)) return;
    event.preventDefault();
    take([...event.dataTransfer!.files]);
  });
}

/** A text with its looks, of which office programs give a picture as well: it stays a text. The name of a copied file is a text without. */
const isFormatted = (types: readonly string[]) =>
  types.includes('text/plain') && (types.includes('text/html') || types.includes('text/rtf'));

const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') ?? false;
