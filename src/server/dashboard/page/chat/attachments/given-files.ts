/** Class of the page while files are held over it. */
const HELD = 'holds-files';

/**
 * Takes files that are pasted into the text, or dropped anywhere on the page: a file that misses its place would else be opened in place of the
 * page. A paste that has a text too stays a text, as of a table of which an office program gives a picture as well.
 */
export function onGivenFiles(text: HTMLElement, dropped: HTMLElement, take: (files: File[]) => void): void {
  text.addEventListener('paste', (event) => {
    const { clipboardData: given } = event;
    if (given === null || given.files.length === 0 || given.types.includes('text/plain')) return;
    event.preventDefault();
    take([...given.files]);
  });
  const hold = (isHeld: boolean) => dropped.classList.toggle(HELD, isHeld);
  document.addEventListener('dragover', (event) => {
    if (!hasFiles(event) || document.querySelector('dialog[open]') !== null) return;
    event.preventDefault();
    hold(true);
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

const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') ?? false;
