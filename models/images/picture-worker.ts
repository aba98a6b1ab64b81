import { findPackages } from '../../base/optional-packages.js';
import { answerJobs } from '../answer-jobs.js';
import { type PictureJob, type PreparedPicture, preparedPicture } from './prepare-picture.js';
import { picturePreprocessor } from './preprocess/index.js';
import type { PictureFiles, PicturePreprocessor } from './preprocess/picture-preprocessor.js';
import { loadSharp, SHARP_PACKAGE, type Sharp } from './sharp-package.js';

/** Entry of the process that decodes and prepares pictures. */
let sharp: Sharp | null = null;
let last: { files: string; preprocessor: PicturePreprocessor } | null = null;

answerJobs(async (job: PictureJob): Promise<PreparedPicture> => {
  sharp ??= loadSharp(findPackages(Object.keys(SHARP_PACKAGE), null));
  return preparedPicture(job, preprocessorOf(job.files), sharp);
});

/** One for all pictures of a model. */
function preprocessorOf(files: PictureFiles): PicturePreprocessor {
  const key = JSON.stringify(files);
  if (last?.files !== key) last = { files: key, preprocessor: picturePreprocessor(files) };
  return last.preprocessor;
}
