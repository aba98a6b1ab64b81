/**
 * The bytes of a file in base64.
 * @param onProgress called with the share that is read, from 0 to 1
 * @throws where the file cannot be read any more, and when the signal is given
 */
export function base64Of(
  blob: Blob,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onprogress = ({ loaded, total }) => onProgress(loaded / total);
    reader.onload = () => {
      const url = reader.result as string;
      resolve(url.slice(url.indexOf(',') + 1));
    };
    reader.onerror = () => reject(reader.error);
    reader.onabort = () => reject(signal.reason);
    signal.addEventListener('abort', () => reader.abort());
    reader.readAsDataURL(blob);
  });
}
