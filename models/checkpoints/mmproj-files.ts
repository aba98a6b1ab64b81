import { readdirSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Names of GGUFs of towers, as llama.cpp's converter and those who publish them have them: mmproj-model-f16.gguf, model.mmproj-f16.gguf. */
const NAME = /mmproj.*\.gguf$/i;

/** True of a GGUF whose name says that it is the part of a model that sees. */
export const isMmprojName = (file: string): boolean => NAME.test(basename(file));

/** The GGUFs in a folder that are parts of models that see, by their names. */
export function mmprojFiles(folder: string): string[] {
  return readdirSync(folder)
    .filter(isMmprojName)
    .sort()
    .map((name) => join(folder, name));
}
