// Reads PDF files away from the page: pdf.js waits here for what it is told.
import 'pdfjs-dist/build/pdf.worker.mjs';
