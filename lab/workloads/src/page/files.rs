//! The files of a page.

use hol_base::Rng;

use super::{Frame, Page};

/// A file of a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// Octets of the file.
    pub(crate) size: u32,
    /// Indices of the files that the file references.
    pub(crate) references: Vec<u16>,
}

/// Draws the files of the next page: the document, if the page has one, then the objects wave by wave.
pub(crate) fn draw(page: &Page, rng: &mut Rng) -> Vec<File> {
    let document = u16::from(page.document.0 > 0);
    let objects = (0..page.objects).map(|_| page.size.draw(rng, [Frame::MIN, Page::MAX_FILE_OCTETS]));
    let sizes = [page.document.0 as u32].into_iter().filter(|size| *size > 0).chain(objects);
    let mut files: Vec<File> = sizes.map(|size| File { size, references: Vec::new() }).collect();
    let first_of =
        |wave: u16| document + (u32::from(page.objects) * u32::from(wave) / u32::from(page.waves)) as u16;
    let mut before = 0..document;
    for wave in 0..page.waves {
        let own = first_of(wave)..first_of(wave + 1);
        for (file, namer) in own.clone().zip(before.clone().cycle()) {
            files[usize::from(namer)].references.push(file);
        }
        before = own;
    }
    files
}

/// Returns the indices of the files that are known when the page starts.
pub(crate) fn initial_files(page: &Page) -> std::ops::Range<u16> {
    if page.document.0 > 0 { 0..1 } else { 0..(u32::from(page.objects) / u32::from(page.waves)) as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hol_base::{ByteCount, Seed};

    fn references(document: u64, objects: u16, waves: u16) -> Vec<Vec<u16>> {
        let page = Page { document: ByteCount(document), objects, waves, ..Page::default() };
        draw(&page, &mut Seed(1).rng()).into_iter().map(|file| file.references).collect()
    }

    #[test]
    fn document_references_the_first_wave_and_each_wave_the_next() {
        assert_eq!(references(100, 3, 1), [vec![1, 2, 3], vec![], vec![], vec![]]);
        assert_eq!(references(100, 4, 2), [vec![1, 2], vec![3], vec![4], vec![], vec![]]);
        assert_eq!(references(100, 3, 2), [vec![1], vec![2, 3], vec![], vec![]]);
        assert_eq!(references(0, 3, 1), vec![Vec::<u16>::new(); 3]);
        assert_eq!(references(0, 4, 2), [vec![2], vec![3], vec![], vec![]]);
    }

    #[test]
    fn each_file_is_known_initially_or_referenced_once() {
        for (document, objects, waves) in [(100, 7, 3), (0, 7, 3), (100, 1, 1), (0, 9, 9), (100, 0, 1)] {
            let page = Page { document: ByteCount(document), objects, waves, ..Page::default() };
            let mut all: Vec<u16> = references(document, objects, waves).concat();
            all.extend(initial_files(&page));
            all.sort_unstable();
            let files = objects + u16::from(document > 0);
            assert_eq!(all, (0..files).collect::<Vec<_>>(), "{objects} in {waves}");
        }
    }
}
