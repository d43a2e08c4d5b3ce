//! A folder of a sealed workspace as one ZIP file. It is read as a file is, by the same calls.

use content::archive::ArchiveReading;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::sealed_workspace::{Reading, SealedWorkspace, reading_of};

#[wasm_bindgen]
impl SealedWorkspace {
    /// Begins to read a folder with everything in it but links and workspaces of their own, as a ZIP file; returns a number by which the reading
    /// is called until [`end`](Self::end).
    ///
    /// # Errors
    /// `no_such` where no such folder is there, or it is a workspace of its own or lies in one; `too_much_to_archive`.
    #[wasm_bindgen(js_name = "beginArchive")]
    pub fn begin_archive(&mut self, folder: &str) -> Result<u32, Failure> {
        let reading = ArchiveReading::new(self.replay.tree(), self.folder(folder)?)?;
        let reading = reading.ok_or_else(|| Failure::of("no_such", "there is no such folder"))?;
        Ok(self.begin_reading(Reading::Archive(Box::new(reading))))
    }

    /// Returns how long an archive is that is read.
    ///
    /// # Errors
    /// `no_such`.
    #[wasm_bindgen(js_name = "archiveLength")]
    pub fn archive_length(&mut self, reading: u32) -> Result<f64, Failure> {
        match reading_of(&mut self.readings, reading)? {
            Reading::Archive(archive) => Ok(archive.length() as f64),
            Reading::File(_) => Err(Failure::of("no_such", "no archive is read by that number")),
        }
    }

    /// Returns the path of the file that is read of an archive; nothing where none is.
    #[wasm_bindgen(js_name = "readPath")]
    pub fn read_path(&self, reading: u32) -> Option<String> {
        match self.readings.get(&reading) {
            Some(Reading::Archive(archive)) => archive.current(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sealed_writing::tests::{ROOT, Scene};

    #[test]
    fn folder_is_read_as_one_file_of_known_length_and_says_where_it_is() {
        let mut scene = Scene::new();
        let mut page = scene.page(1);
        let made = page.make_folder(ROOT, "Letters").unwrap();
        scene.act(&mut page, made).unwrap();
        scene.put(&mut page, "plan.txt", b"the plan");
        let file = page.list(ROOT).unwrap()[1].id.clone();
        assert_eq!(page.begin_archive(&file).err().unwrap().code, "no_such");

        let reading = page.begin_archive(ROOT).unwrap();
        let length = page.archive_length(reading).unwrap();
        assert_eq!(page.read_path(reading), None);
        let mut bytes = page.read(reading).unwrap();
        if !page.is_over(reading).unwrap() {
            assert_eq!(page.read_path(reading).as_deref(), Some("plan.txt"));
            let wanted = page.wanted(reading).unwrap();
            assert_eq!(wanted.len(), 1);
            let seq = wanted[0].inline_seq.unwrap();
            page.take_entry(reading, 0, &scene.frame(seq - 1.0)).unwrap();
            bytes.extend(page.read(reading).unwrap());
        }
        assert!(page.is_over(reading).unwrap());
        assert_eq!(bytes.len() as f64, length);
        for part in [&b"PK\x03\x04"[..], b"Letters/", b"plan.txt", b"the plan", b"PK\x05\x06"] {
            assert!(bytes.windows(part.len()).any(|window| window == part));
        }
        page.end(reading);
        assert_eq!(page.archive_length(reading).err().unwrap().code, "no_such");
        let reading = page.begin(&file).unwrap();
        assert_eq!(page.read_path(reading), None);
        assert_eq!(page.archive_length(reading).err().unwrap().code, "no_such");
    }
}
